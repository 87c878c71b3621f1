
-- Bytes and numbers as text ---------------------------------------------------------------------------------------------

local text = {}

-- Lengths of what is shown; the first two can be set in the preferences.
text.argument_bytes_max = 40
text.arguments_max = 16
text.value_bytes_max = 4096

local function hex_byte(byte)
  return string.format("\\x%02x", byte:byte())
end

-- The UTF-8 sequence at `at`, if there is a whole one. Surrogates are let through: they do no harm here.
local function utf8_at(bytes, at)
  return bytes:match("^[\194-\223][\128-\191]", at)
    or bytes:match("^[\224-\239][\128-\191][\128-\191]", at)
    or bytes:match("^[\240-\244][\128-\191][\128-\191][\128-\191]", at)
end

-- Printable text for any bytes: `\xNN` for control characters and for what is not UTF-8, `\\` for a backslash.
function text.escape(bytes)
  local ascii = bytes:gsub("\\", "\\\\"):gsub("[\0-\31\127]", hex_byte)
  if not ascii:find("[\128-\255]") then
    return ascii
  end
  local out, at = {}, 1
  while at <= #ascii do
    local piece = ascii:match("^[\0-\127]+", at) or utf8_at(ascii, at)
    out[#out + 1] = piece or hex_byte(ascii:sub(at, at))
    at = at + (piece and #piece or 1)
  end
  return table.concat(out)
end

-- The same for at most `max` bytes, and how many there are when there are more.
function text.elide(bytes, max)
  if #bytes <= max then
    return text.escape(bytes)
  end
  return text.escape(bytes:sub(1, max)) .. "…(" .. #bytes .. " bytes)"
end

-- An argument as one word of a command line.
function text.word(bytes)
  local shown = text.elide(bytes, text.argument_bytes_max)
  if bytes == "" or bytes:sub(1, text.argument_bytes_max):find("[ \"|]") then
    return '"' .. shown:gsub('"', '\\"') .. '"'
  end
  return shown
end

-- What a field of the tree holds.
function text.value(bytes)
  return text.elide(bytes, text.value_bytes_max)
end

-- The shortest digits that read back as `value` (positive, finite), without leading or trailing zeros, and the exponent of
-- the last one: value = digits * 10^exponent.
local function shortest(value)
  for precision = 0, 16 do
    local shown = string.format("%." .. precision .. "e", value)
    local first, rest, exponent = shown:match("^(%d)[^%d]?(%d*)e([+-]%d+)$")
    local digits = first .. rest
    if tonumber(shown) ~= value and precision < 16 then
      -- Above a power of two doubles lie further apart than below it: there the next greater digits may read back, though
      -- they are not the nearest. A last digit of 9 would have given a shorter text before.
      local last = tonumber(digits:sub(-1))
      digits = last < 9 and digits:sub(1, -2) .. (last + 1) or digits
      shown = digits .. "e" .. (tonumber(exponent) - precision)
    end
    if tonumber(shown) == value or precision == 16 then
      digits = digits:gsub("0+$", "")
      return digits, tonumber(exponent) - (#digits - 1)
    end
  end
end

-- The canonical text of a double (section E.3).
function text.double(value)
  if value ~= value then
    return "nan"
  elseif value == math.huge or value == -math.huge then
    return value > 0 and "inf" or "-inf"
  elseif value == 0 then
    return 1 / value < 0 and "-0" or "0"
  end
  local sign = value < 0 and "-" or ""
  value = math.abs(value)
  if value <= 2 ^ 62 and value % 1 == 0 then
    return sign .. string.format("%.0f", value)
  end
  local digits, k = shortest(value)
  local n = #digits
  local e = k + n - 1
  if k >= 0 and e < n + 7 then
    return sign .. digits .. ("0"):rep(k)
  elseif k < 0 and (k > -7 or math.abs(e) < 4) then
    local point = n + k
    if point <= 0 then
      return sign .. "0." .. ("0"):rep(-point) .. digits
    end
    return sign .. digits:sub(1, point) .. "." .. digits:sub(point + 1)
  end
  local fraction = n > 1 and "." .. digits:sub(2) or ""
  return string.format("%s%s%se%s%d", sign, digits:sub(1, 1), fraction, e < 0 and "-" or "+", math.abs(e))
end

-- The words of a token of the table: `AGGREGATE SUM` is two arguments.
function text.words(token)
  local words = {}
  for word in (token or ""):gmatch("[^ ]+") do
    words[#words + 1] = word
  end
  return words
end

-- Bits are taken apart with arithmetic: the library for it is not the same in the versions of Lua that Wireshark has had.
local function has_bit(bits, index)
  return math.floor(bits / 2 ^ index) % 2 == 1
end

local function count_common_bits(a, b)
  local count = 0
  for index = 0, 15 do
    if has_bit(a, index) and has_bit(b, index) then
      count = count + 1
    end
  end
  return count
end
