
-- Replies (section 5) ---------------------------------------------------------------------------------------------------

local reply = {}

-- Elements of an aggregate whose text goes to the summary, and how deep.
local SUMMARY_ELEMENTS_MAX = 6
local SUMMARY_DEPTH_MAX = 3

local function quoted(bytes)
  return '"' .. text.elide(bytes, text.argument_bytes_max):gsub('"', '\\"') .. '"'
end

-- Adds the node of a value. `head` says where it begins (`at` the tag or the opcode, `is_element`, `label`); `parts` are the
-- nodes under it.
local function add(reader, head, nodes, kind, stop, summary, parts)
  local node = { at = head.at, len = stop - head.at, field = "type", value = kind, nodes = {} }
  node.label = head.label .. kind .. (summary and summary ~= "" and ": " .. summary or "")
  if head.is_element then
    node.nodes[1] = { at = head.at, len = 1, field = "tag", value = head.tag }
  end
  for _, part in ipairs(parts or {}) do
    node.nodes[#node.nodes + 1] = part
  end
  return reader:node(nodes, node)
end

-- Text behind a length of `size` bytes; returns the bytes, the offset behind them and the nodes.
local function sized(reader, at, size, field, is_last)
  local len = size == 2 and reader:u16(at) or reader:u32(at)
  local bytes = reader:body(at, at + size, len, is_last)
  local length = { at = at, len = size, field = "length", value = len }
  local value = { at = at + size, len = len, field = field, value = text.value(bytes) }
  if len == 0 then
    value.at, value.len = at, size
  end
  return bytes, at + size + len, { length, value }
end

local function integer(reader, head, at, size, nodes)
  local bytes = reader:take(at, size, reader.owed == 0)
  local fill = size == 4 and (bytes:byte() >= 128 and "\255\255\255\255" or "\0\0\0\0") or ""
  local value = Int64.decode(fill .. bytes, false)
  local shown = tostring(value)
  add(reader, head, nodes, "integer", at + size, shown, { { at = at, len = size, field = "int", value = value } })
  return at + size, shown
end

local TEXTS = {
  [0x01] = { kind = "error", size = 2, field = "error" },
  [0x03] = { kind = "bulk", size = 4, field = "bulk" },
  [0x0B] = { kind = "simple", size = 2, field = "simple" },
  [0x0C] = { kind = "big-number", size = 4, field = "big_number" },
  [0x0F] = { kind = "error", size = 4, field = "error" },
}

local function sized_text(reader, head, at, nodes)
  local form = TEXTS[head.tag]
  local bytes, stop, parts = sized(reader, at, form.size, form.field, reader.owed == 0)
  if form.kind == "big-number" and not bytes:find("^[+-]?[0-9]+$") then
    bad("bad-number", at + 4)
  end
  local summary = form.kind == "bulk" and quoted(bytes) or text.elide(bytes, 2 * text.argument_bytes_max)
  add(reader, head, nodes, form.kind, stop, summary, parts)
  if form.kind == "error" then
    summary = "-" .. summary
    reader.has_error = true
  end
  return stop, summary
end

local function verbatim(reader, head, at, nodes)
  local format = reader:take(at, 3)
  local bytes, stop, parts = sized(reader, at + 3, 4, "verbatim", reader.owed == 0)
  table.insert(parts, 1, { at = at, len = 3, field = "verbatim_format", value = text.value(format) })
  local summary = text.escape(format) .. ":" .. quoted(bytes)
  add(reader, head, nodes, "verbatim", stop, summary, parts)
  return stop, summary
end

local SCALARS = {
  [0x00] = function(reader, head, at, nodes)
    local size = at - head.at
    size = head.is_element and size or 2
    add(reader, head, nodes, "ok", at, nil, { { at = head.at, len = size, field = "simple", value = "OK" } })
    return at, "OK"
  end,
  [0x02] = function(reader, head, at, nodes)
    return integer(reader, head, at, 8, nodes)
  end,
  [0x05] = function(reader, head, at, nodes)
    add(reader, head, nodes, "null", at)
    return at, "null"
  end,
  [0x06] = function(reader, head, at, nodes)
    local byte = reader:u8(at, reader.owed == 0)
    if byte > 1 then
      bad("bad-bool", at)
    end
    local shown = byte == 1 and "true" or "false"
    add(reader, head, nodes, "boolean", at + 1, shown, { { at = at, len = 1, field = "bool", value = byte == 1 } })
    return at + 1, shown
  end,
  [0x07] = function(reader, head, at, nodes)
    local value = to_double(reader:take(at, 8, reader.owed == 0))
    local shown = text.double(value)
    add(reader, head, nodes, "double", at + 8, shown, { { at = at, len = 8, field = "double", value = value } })
    return at + 8, shown
  end,
  [0x0D] = verbatim,
  [0x10] = function(reader, head, at, nodes)
    return integer(reader, head, at, 4, nodes)
  end,
  [0x01] = sized_text,
  [0x03] = sized_text,
  [0x0B] = sized_text,
  [0x0C] = sized_text,
  [0x0F] = sized_text,
}

local AGGREGATE_KINDS = { [0x04] = "array", [0x08] = "map", [0x09] = "set", [0x0A] = "push", [0x0E] = "attribute" }
local BRACKETS = { array = { "[", "]" }, map = { "{", "}" }, set = { "{", "}" }, push = { "", "" }, attribute = { "|{", "}|" } }

-- The elements of an aggregate, on one line. `first` are the summaries of the first ones, `count` is how many there are.
local function join(kind, first, count, depth)
  local open, shut = BRACKETS[kind][1], BRACKETS[kind][2]
  if depth >= SUMMARY_DEPTH_MAX and count > 0 then
    return open .. string.format("%.0f elements", count) .. shut
  end
  local separator = kind == "push" and " " or ", "
  local shown = {}
  if kind == "map" or kind == "attribute" then
    for index = 1, #first - 1, 2 do
      shown[#shown + 1] = first[index] .. ": " .. first[index + 1]
    end
  else
    shown = first
  end
  local line = table.concat(shown, separator)
  if count > #first then
    line = line .. string.format("%s…(%.0f elements)", separator, count)
  end
  return open .. line .. shut
end

-- An aggregate of type `head.tag` whose count stands at `at`; returns the offset behind its elements and its summary.
local function aggregate(reader, head, at, depth, nodes)
  local kind, count = AGGREGATE_KINDS[head.tag], reader:u32(at)
  if kind == "push" and head.at ~= 0 then
    bad("misplaced", head.at)
  elseif depth >= NESTING_MAX then
    bad("too-deep", head.at)
  end
  local has_pairs = kind == "map" or kind == "attribute"
  local left = has_pairs and count * 2 or count
  local node = add(reader, head, nodes, kind, at + 4, nil, { { at = at, len = 4, field = "count", value = count } })
  node.label = string.format("%s%s of %.0f%s", head.label, kind, count, has_pairs and " pairs" or "")
  local first, next_at = {}, at + 4
  local described = kind == "attribute" and 1 or 0
  reader.owed = reader.owed + left + described
  for index = 1, left do
    local label = string.format("[%.0f] ", index - 1)
    if has_pairs then
      label = string.format("[%.0f] %s ", math.floor((index - 1) / 2), index % 2 == 1 and "key" or "value")
    end
    local summary
    reader.owed = reader.owed - 1
    next_at, summary = reply.element(reader, next_at, depth + 1, label, node.nodes)
    node.len = next_at - node.at
    first[index] = index <= SUMMARY_ELEMENTS_MAX and summary or nil
  end
  reader.owed = reader.owed - described
  local summary = join(kind, first, left, depth)
  node.label = node.label .. (depth > 0 and count > 0 and ": " .. text.elide(summary, 120) or "")
  return next_at, summary
end

-- A value of type `head.tag` whose payload begins at `at`, not an attribute.
local function value(reader, head, at, depth, nodes)
  if SCALARS[head.tag] then
    return SCALARS[head.tag](reader, head, at, nodes)
  elseif AGGREGATE_KINDS[head.tag] then
    return aggregate(reader, head, at, depth, nodes)
  end
  bad(head.is_element and "unknown-tag" or "unknown-opcode", head.at)
end

-- An element: a tag and a value (section 5.3). Attributes before it are a loop, since nothing limits how many there are.
function reply.element(reader, at, depth, label, nodes)
  local described = ""
  while true do
    local tag = reader:u8(at)
    local head = { at = at, tag = tag, is_element = true, label = label }
    if tag == 0x0E then
      local summary
      at, summary = aggregate(reader, head, at + 1, depth, nodes)
      described = described == "" and summary .. " " or described
    elseif tag <= 0x1F then
      local stop, summary = value(reader, head, at + 1, depth, nodes)
      return stop, described .. summary
    elseif tag <= 0x3F then
      bad("unknown-tag", at)
    elseif tag <= 0x7F then
      local int = { at = at, len = 1, field = "int", value = Int64.new(tag - 0x41) }
      if tag == 0x40 then
        int.value = Int64.decode("\255\255\255\255\255\255\255\255", false)
      end
      add(reader, head, nodes, "integer", at + 1, tostring(tag - 0x41), { int })
      return at + 1, described .. tostring(tag - 0x41)
    else
      local len = tag - 0x80
      local bytes = reader:body(at, at + 1, len, reader.owed == 0)
      local bulk = { at = len > 0 and at + 1 or at, len = math.max(len, 1), field = "bulk", value = text.value(bytes) }
      add(reader, head, nodes, "bulk", at + 1 + len, quoted(bytes), { bulk })
      return at + 1 + len, described .. quoted(bytes)
    end
  end
end

-- The forms with their length or their number in the opcode.
local function short(reader, high, low, nodes)
  local head = { at = 0, tag = low, label = "" }
  if high == 0x81 then
    add(reader, head, nodes, "integer", 4, tostring(low), { { at = 1, len = 1, field = "int", value = Int64.new(low) } })
    return 4, tostring(low)
  end
  local kind = high == 0x82 and "bulk" or "simple"
  local bytes = reader:body(0, 4, low, true)
  local length = { at = 1, len = 1, field = "length", value = low }
  local body = { at = 4, len = low, field = kind, value = text.value(bytes) }
  if low == 0 then
    body.at, body.len = 1, 1
  end
  local summary = kind == "bulk" and quoted(bytes) or text.elide(bytes, text.argument_bytes_max)
  add(reader, head, nodes, kind, 4 + low, summary, { length, body })
  return 4 + low, summary
end

local ONLY_FROM_CLIENTS = { [0xF000] = true, [0xF001] = true, [CANCEL] = true, [WINDOW] = true, [PASSTHROUGH] = true }

-- Decodes what a server sent into `frame`; returns its length.
function reply.decode(reader, frame)
  local opcode = frame.opcode
  if opcode <= 0x07FF or ONLY_FROM_CLIENTS[opcode] then
    bad("wrong-direction", 0)
  elseif opcode >= 0xF002 then
    return control.decode(reader, frame)
  elseif opcode < 0x8000 or opcode > 0x83FF then
    bad("unknown-opcode", 0)
  end
  frame.kind = opcode == 0x800A and "push" or "reply"
  local high, low = math.floor(opcode / 256), opcode % 256
  local stop, summary
  if high ~= 0x80 then
    stop, summary = short(reader, high, low, frame.nodes)
  else
    local head = { at = 0, tag = low, label = "" }
    stop, summary = value(reader, head, 4, 0, frame.nodes)
    if low == 0x0E then
      local described
      stop, described = reply.element(reader, stop, 0, "value ", frame.nodes)
      summary = summary .. " " .. described
    end
  end
  frame.line, frame.has_error = summary, reader.has_error
  return stop
end
