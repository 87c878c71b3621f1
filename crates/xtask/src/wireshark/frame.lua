
-- One frame of either direction ------------------------------------------------------------------------------------------

-- Decodes the frame behind `base` bytes of `bytes`. Returns a frame; or nil and what is missing: `need`, the bytes of
-- the frame that must be there, and `exact`, whether it ends with them. With that as `waiting` and the same bytes and
-- more it goes on where it stopped. A frame has
--   opcode, channel   once the header is there
--   kind              core, module, argv, passthrough, unknown: a request; reply, push; close, cancel, window, fragment; ignored
--   len               its bytes; none when the stream is lost
--   nodes             its fields
--   line              what it says, on one line
--   error, error_at   what is wrong with it, and where
local function decode_frame(bytes, base, from_client, waiting)
  local reader = waiting and waiting.reader or new_reader(bytes, base)
  local frame = waiting and waiting.frame or { nodes = {} }
  reader.bytes, reader.base, reader.available, reader.waits = bytes, base, #bytes - base, true
  local thread = waiting and waiting.thread or coroutine.create(function()
    reader:take(0, 4)
    frame.opcode, frame.channel = reader:u16(0), reader:u16(2)
    frame.len = (from_client and request or reply).decode(reader, frame)
  end)
  local ok, stopped = coroutine.resume(thread)
  if coroutine.status(thread) == "suspended" then
    stopped.reader, stopped.frame, stopped.thread = reader, frame, thread
    return nil, stopped
  end
  frame.line, frame.argc = frame.line or reader:summary(), reader.argc
  if ok then
    return frame
  elseif type(stopped) ~= "table" then
    -- A defect of this script, not of the frame; said so rather than raised.
    stopped = { error = "dissector-defect: " .. tostring(stopped), at = 0 }
  end
  frame.error, frame.error_at = stopped.error, stopped.at
  -- A frame that carries its length can be passed over.
  frame.len = frame.opcode and frame.opcode >= 0xF001 and reader.carried or nil
  if frame.len and frame.len > reader.available then
    return nil, { need = frame.len, exact = true }
  end
  return frame
end

local IS_REQUEST = { core = true, module = true, argv = true, passthrough = true, unknown = true }

local OPCODES = {
  [0x8000] = "OK",
  [0x8001] = "error",
  [0x8002] = "integer",
  [0x8003] = "bulk",
  [0x8004] = "array",
  [0x8005] = "null",
  [0x8006] = "boolean",
  [0x8007] = "double",
  [0x8008] = "map",
  [0x8009] = "set",
  [0x800A] = "push",
  [0x800B] = "simple string",
  [0x800C] = "big number",
  [0x800D] = "verbatim string",
  [0x800E] = "attribute",
  [0x800F] = "long error",
  [0x8010] = "integer of 32 bits",
  [0xF000] = "module command",
  [0xF001] = "ARGV",
  [0xFF01] = "CLOSE",
  [0xFF02] = "CANCEL",
  [0xFF03] = "WINDOW",
  [0xFF04] = "GOAWAY",
  [0xFF10] = "FRAGMENT",
  [0xFFFF] = "passthrough",
}

-- The opcode in words.
local function opcode_name(frame)
  local opcode = frame.opcode
  if frame.kind == "module" then
    return "module command"
  elseif CORE[opcode] then
    return CORE[opcode].name
  elseif opcode >= 0x8100 and opcode <= 0x83FF then
    local high = math.floor(opcode / 256)
    return (high == 0x81 and "integer " or high == 0x82 and "bulk of " or "simple string of ") .. opcode % 256
  end
  return OPCODES[opcode] or (opcode >= 0xFF00 and "unknown control frame") or "unassigned"
end
