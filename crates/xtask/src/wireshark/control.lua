
-- Control frames and what carries its length (sections 3.5, 8 and 9) -----------------------------------------------------

local CLOSE, CANCEL, WINDOW, GOAWAY, FRAGMENT, PASSTHROUGH = 0xFF01, 0xFF02, 0xFF03, 0xFF04, 0xFF10, 0xFFFF

local CLOSE_CODES = {
  [0] = "done",
  [1] = "the channel's queue is full",
  [2] = "the channel's output limit was exceeded",
  [3] = "idle for too long",
  [4] = "killed",
  [5] = "too many channels, or too many connections",
  [6] = "the server shuts down",
  [7] = "the user was removed or disabled",
  [8] = "bytes that could not be read",
  [9] = "not from this address, or not without TLS",
  [10] = "authentication is missing",
}

-- CLOSE and GOAWAY: nothing (CLOSE only), or a code and a reason.
local function close(reader, frame, len, kind, line)
  frame.kind, frame.code = kind, 0
  if len == 1 or len == 0 and kind == "goaway" then
    bad("bad-control", 8)
  elseif len >= 2 then
    frame.code = reader:u16(8)
    local meaning = CLOSE_CODES[frame.code] or (frame.code >= 256 and "application" or "unassigned")
    local label = string.format("Code: %d (%s)", frame.code, meaning)
    reader:node(frame.nodes, { at = 8, len = 2, field = "close_code", value = frame.code, label = label })
    line = line .. " " .. frame.code .. " (" .. meaning .. ")"
  end
  if len > 2 then
    local reason = reader:take(10, len - 2)
    reader:node(frame.nodes, { at = 10, len = len - 2, field = "close_reason", value = text.value(reason) })
    line = line .. " " .. text.word(reason)
  end
  frame.line = line
end

-- CANCEL and WINDOW: one u32.
local function number(reader, frame, len, kind, name)
  frame.kind = kind
  if len ~= 4 then
    bad("bad-control", 8)
  end
  local value = reader:u32(8)
  frame.number, frame.line = value, string.format("%s %.0f", name, value)
  reader:node(frame.nodes, { at = 8, len = 4, field = kind, value = value })
end

local function fragment(reader, frame, len)
  frame.kind = "fragment"
  if len == 0 then
    bad("bad-control", 8)
  end
  local flags = reader:u8(8)
  local label = string.format("Flags: 0x%02x (%s)", flags, flags == 1 and "the last" or "more follow")
  reader:node(frame.nodes, { at = 8, len = 1, field = "fragment_flags", value = flags, label = label })
  if flags > 1 or len - 1 > FRAGMENT_BYTES_MAX then
    bad("bad-control", 8)
  end
  frame.is_last, frame.slice = flags == 1, reader:take(9, len - 1)
  label = string.format("Slice: %d bytes", len - 1)
  reader:node(frame.nodes, { at = 9, len = len - 1, field = "fragment_slice", label = label })
  frame.line = string.format("FRAGMENT of %d bytes%s", len - 1, frame.is_last and ", the last" or "")
end

-- A frame of 0xF002 to 0xFFFF; returns its length.
function control.decode(reader, frame)
  local opcode, len = frame.opcode, reader:u32(4)
  local stop = 8 + len
  if stop > FRAME_BYTES_MAX then
    bad("frame-too-long", 4)
  end
  reader.carried = stop
  reader:take(8, len)
  reader:node(frame.nodes, { at = 4, len = 4, field = "length", value = len, label = "Length: " .. len })
  if opcode == PASSTHROUGH then
    frame.kind = "passthrough"
    resp.passthrough(reader, frame, stop)
  elseif opcode == CLOSE then
    close(reader, frame, len, "close", "CLOSE")
  elseif opcode == GOAWAY then
    close(reader, frame, len, "goaway", "GOAWAY")
  elseif opcode == CANCEL then
    number(reader, frame, len, "cancel", "CANCEL")
  elseif opcode == WINDOW then
    number(reader, frame, len, "window", "WINDOW")
  elseif opcode == FRAGMENT then
    fragment(reader, frame, len)
  else
    frame.kind = opcode >= 0xFF00 and "ignored" or "unknown"
    frame.line = string.format("unknown frame 0x%04X of %d bytes", opcode, len)
    frame.note = opcode >= 0xFF00 and "a control frame of a later version, to be ignored"
      or "a request of a later version: skipped, and answered with an error"
    if len > 0 then
      reader:node(frame.nodes, { at = 8, len = len, label = string.format("Payload: %d bytes", len) })
    end
  end
  return stop
end
