
-- RESP: inside passthrough frames, and before a connection switches ------------------------------------------------------

local resp = {}

local LENGTH_LINE_BYTES_MAX = 32
local INLINE_BYTES_MAX = 65536

-- The number of the line at `at`, whose first byte names a type, and the offset behind the line.
local function length_line(reader, at, wrong, endless)
  local from = reader.base + at + 2
  local line_end = reader.bytes:find("\r", from, true)
  if not line_end or line_end > reader.base + reader.available then
    if reader.available - at - 1 >= LENGTH_LINE_BYTES_MAX then
      bad(endless, at)
    end
    error({ need = reader.available + 1 }, 0)
  end
  local len = line_end - from
  if reader:take(at + 1 + len + 1, 1) ~= "\n" then
    bad(wrong, at)
  end
  local digits = reader.bytes:sub(from, line_end - 1)
  local is_number = digits:find("^-?[1-9][0-9]*$") or digits == "0"
  if not is_number or #digits > 19 then
    bad(wrong, at)
  end
  return tonumber(digits), at + 1 + len + 2
end

-- An array of bulks from `at` on. Calls `each(index, at of the length, at of the bytes, bytes)`; returns the offset behind it
-- and the count.
function resp.array(reader, at, each)
  local count, next_at = length_line(reader, at, "multibulk-length", "multibulk-line")
  if count > 2147483647 then
    bad("multibulk-length", at)
  end
  at = next_at
  for index = 1, count do
    if reader:take(at, 1) ~= "$" then
      bad("expected-bulk", at)
    end
    local len, start = length_line(reader, at, "bulk-length", "bulk-line")
    if len < 0 or len > ARGUMENT_BYTES_MAX then
      bad("bulk-length", at)
    end
    local bytes = reader:take(start, len + 2, index == count)
    if bytes:sub(-2) ~= "\r\n" then
      bad("bulk-end", start + len)
    end
    each(index, at, start, bytes:sub(1, -3))
    at = start + len + 2
  end
  return at, count
end

-- The payload of a passthrough frame (section 3.7), from offset 8 to `stop`.
function resp.passthrough(reader, frame, stop)
  local inner = new_reader(reader.bytes, reader.base, reader.base + stop)
  if stop == 8 or inner:take(8, 1) ~= "*" then
    bad("not-one-command", 8)
  end
  local shown, names = {}, {}
  local function each(index, at, start, bytes)
    local node = text_node("argument", "Argument " .. index - 1, at, start, bytes, "RESP bulk")
    shown[#shown + 1] = not reader:is_full() and node or nil
    reader:node(frame.nodes, node)
    reader:argument(bytes)
    names[#names + 1] = #names < 2 and bytes or nil
  end
  local ok, next_at, count = pcall(resp.array, inner, 8, each)
  if not ok then
    local stopped = next_at
    if type(stopped) == "table" and stopped.need then
      bad("not-one-command", stop)
    end
    error(stopped, 0)
  elseif count <= 0 then
    bad("not-one-command", 8)
  elseif next_at ~= stop then
    bad("not-one-command", next_at)
  end
  name_command(frame, names[1], names[2])
  mark_keys(shown, 0, reader.argc, frame.command, frame.subcommand)
end

-- One request at the start of a stream or behind another: an array or an inline command. Returns its length and its first
-- arguments.
function resp.request(reader)
  local args = {}
  if reader:take(0, 1) == "*" then
    local len = resp.array(reader, 0, function(index, _, _, bytes)
      args[index] = index <= 64 and bytes or nil
    end)
    return len, args
  end
  local line_end = reader.bytes:find("\n", reader.base + 1, true)
  if not line_end then
    if reader.available > INLINE_BYTES_MAX then
      bad("inline-too-long", 0)
    end
    error({ need = reader.available + 1 }, 0)
  end
  local line = reader.bytes:sub(reader.base + 1, line_end)
  for word in line:gmatch("[^ \r\n]+") do
    args[#args + 1] = #args < 64 and word or nil
  end
  return line_end - reader.base, args
end

local LINES = { ["+"] = true, ["-"] = true, [":"] = true, ["_"] = true, ["#"] = true, [","] = true, ["("] = true }
local BULKS = { ["$"] = true, ["="] = true, ["!"] = true }
local AGGREGATES = { ["*"] = 1, ["~"] = 1, [">"] = 1, ["%"] = 2 }

-- One reply; returns its length and its first byte. Streamed values are refused: no server in use sends them.
function resp.reply(reader)
  local first = reader:take(0, 1)
  local at, left, values = 0, 1, 0
  while left > 0 do
    local kind = reader:take(at, 1)
    left = left - 1
    if LINES[kind] then
      local line_end = reader.bytes:find("\r\n", reader.base + at + 1, true)
      if not line_end then
        error({ need = reader.available + 1 }, 0)
      end
      at = line_end + 1 - reader.base
    else
      local count, next_at = length_line(reader, at, "bad-length", "line-too-long")
      if BULKS[kind] then
        if count >= 0 then
          reader:take(next_at, count + 2, left == 0)
          next_at = next_at + count + 2
        end
      elseif AGGREGATES[kind] then
        left = left + math.max(count, 0) * AGGREGATES[kind]
      elseif kind == "|" then
        left = left + count * 2 + 1
      else
        bad("unknown-type", at)
      end
      at = next_at
    end
    values = values + 1
  end
  return at, first
end
