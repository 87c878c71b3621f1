
-- Requests (sections 3 and 4) -------------------------------------------------------------------------------------------

local request = {}

local FIXED_BYTES = { i64 = 8, f64 = 8, u16 = 2, u8 = 1 }

-- Bytes of the fields behind `fields[index]`, when they are always as many; a frame's end is then known there.
local function fixed_tail(fields, index)
  local bytes = 0
  for i = index + 1, #fields do
    local size = FIXED_BYTES[fields[i].t]
    if not size then
      return nil
    end
    bytes = bytes + size
  end
  return bytes
end

-- A field of one value. Returns its node, its text in the argument form (none for a keyword), the offset behind it and the
-- keyword. `tail` is what `fixed_tail` says, or nil.
local function scalar(reader, field, at, tail)
  local kind, name = field.t, field.n
  if kind == "str16" or kind == "blob32" then
    local wide = kind == "blob32"
    local len = wide and reader:u32(at) or reader:u16(at)
    local start = at + (wide and 4 or 2)
    if tail and start + len + tail <= FRAME_BYTES_MAX and len <= ARGUMENT_BYTES_MAX then
      reader:take(start, len + tail, true)
    end
    local bytes = reader:body(at, start, len)
    return text_node(field.f, name, at, start, bytes, wide and "u32" or "u16"), bytes, start + len
  end
  local size = FIXED_BYTES[kind]
  local bytes = reader:take(at, size, tail == 0)
  local node = { at = at, len = size, field = field.f }
  if kind == "i64" then
    node.value = Int64.decode(bytes, false)
  elseif kind == "f64" then
    local value = to_double(bytes)
    if value ~= value then
      bad("bad-number", at)
    end
    node.value, node.shown = value, text.double(value)
  else
    local high, low = bytes:byte(1, 2)
    local value = low and high * 256 + low or high
    if field.values then
      local word = field.values[value + 1] or bad("bad-enum", at)
      node.value, node.label = word, string.format("%s: %s (%d)", name, word, value)
      return node, nil, at + size, word
    end
    node.value = Int64.new(value)
  end
  node.shown = node.shown or tostring(node.value)
  node.label = name .. ": " .. node.shown
  return node, node.shown, at + size
end

-- `list16`: a count, then the items one after the other.
local function list(reader, field, at, nodes, tail)
  local count = reader:u16(at)
  local node = reader:node(nodes, { at = at, len = 2, nodes = {}, label = string.format("%s: %d", field.n, count) })
  reader:node(node.nodes, { at = at, len = 2, field = "count", value = count })
  reader:words(field.token)
  if field.counted then
    reader:argument(tostring(count))
  end
  local columns = {}
  local start = at
  at = at + 2
  for index = 1, count do
    local single = #field.items == 1
    local item = { at = at, nodes = {}, label = string.format("[%d]", index - 1) }
    for column, part in ipairs(field.items) do
      local last = index == count and tail and fixed_tail(field.items, column)
      local value, argument, next_at, word = scalar(reader, part, at, last and last + tail)
      reader:node(item.nodes, value)
      if field.transposed then
        columns[column] = columns[column] or {}
        columns[column][index] = index <= text.arguments_max and argument or ""
      elseif word then
        reader:words(word)
      else
        reader:argument(argument)
      end
      at = next_at
    end
    item.len = at - item.at
    local shown = item.nodes[1]
    if shown and single then
      shown.label = item.label .. " " .. shown.label
      node.nodes[#node.nodes + 1] = shown
    elseif shown then
      node.nodes[#node.nodes + 1] = item
    end
  end
  for _, column in ipairs(columns) do
    for _, argument in ipairs(column) do
      reader:argument(argument)
    end
  end
  node.len = at - start
  return at
end

-- Whether these option bits may stand together (section 4.3).
local function check_bits(field, bits, at)
  if bits >= 2 ^ #field.bits then
    bad("unknown-bit", at)
  end
  for _, set in ipairs(field.exclusive or {}) do
    if count_common_bits(set, bits) > 1 then
      bad("exclusive-bits", at)
    end
  end
  for index, entry in ipairs(field.bits) do
    local needs = has_bit(bits, index - 1) and entry.requires or 0
    if count_common_bits(needs, bits) < count_common_bits(needs, needs) then
      bad("missing-bit", at)
    end
  end
end

-- The line of an option bit, as Wireshark draws bits: `.... .1.. = EX: set`.
local function bit_label(field, index, is_set)
  local drawn = {}
  for bit = 7, 0, -1 do
    drawn[#drawn + 1] = bit == index - 1 and (is_set and "1" or "0") or "."
    if bit % 4 == 0 and bit > 0 then
      drawn[#drawn + 1] = " "
    end
  end
  return string.format("%s = %s: %s", table.concat(drawn), field.bits[index].n, is_set and "set" or "not set")
end

-- `opts8`: the bits, then the fields of those that are set.
local function options(reader, field, at, nodes, tail)
  local bits = reader:u8(at, tail == 0 and #field.bits == 0)
  local node = { at = at, len = 1, field = "options8", value = bits, nodes = {} }
  reader:node(nodes, node)
  for index = 1, #field.bits do
    local is_set = has_bit(bits, index - 1)
    local line = { at = at, len = 1, label = bit_label(field, index, is_set) }
    if is_set then
      line.field, line.value = "option", field.bits[index].n
    end
    reader:node(node.nodes, line)
  end
  check_bits(field, bits, at)
  at = at + 1
  for index, entry in ipairs(field.bits) do
    if has_bit(bits, index - 1) then
      local parts = entry.fields or {}
      local is_last = tail and bits < 2 ^ index
      if #parts == 0 then
        reader:words(entry.token)
      end
      for position, part in ipairs(parts) do
        local behind = is_last and fixed_tail(parts, position)
        local value, argument, next_at, word = scalar(reader, part, at, behind and behind + tail)
        if position == 1 then
          reader:words(entry.token)
        end
        value.label = entry.n .. " " .. value.label
        reader:node(nodes, value)
        if word then
          reader:words(word)
        else
          reader:argument(argument)
        end
        at = next_at
      end
    end
  end
  return at
end

-- A typed layout; returns the offset behind it.
local function walk(reader, fields, at, nodes)
  for index, field in ipairs(fields) do
    local tail = fixed_tail(fields, index)
    if field.t == "list16" then
      at = list(reader, field, at, nodes, tail)
    elseif field.t == "opts8" then
      at = options(reader, field, at, nodes, tail)
    else
      local value, argument, next_at, word = scalar(reader, field, at, tail)
      reader:words(field.token)
      if word then
        reader:words(word)
      else
        reader:argument(argument)
      end
      reader:node(nodes, value)
      at = next_at
    end
  end
  return at
end

-- Marks the arguments that are keys. `nodes[1]` is the argument `first`, the name being argument 0.
local function mark_keys(nodes, first, argc, name, subcommand)
  local keys = KEYS[name .. " " .. (subcommand or "")] or KEYS[name]
  if not keys then
    return
  end
  local last = keys[2] < 0 and argc + keys[2] or keys[2]
  for position = keys[1], math.min(last, #nodes + first - 1), keys[3] do
    local node = nodes[position - first + 1]
    if node and node.field == "argument" then
      node.field = "key"
      node.label = node.label:gsub("^Argument", "Key, argument")
    end
  end
end

-- What a command is called: its name in capitals and, for a container, its subcommand.
local function name_command(frame, name, subcommand)
  frame.command = text.value(name:upper())
  subcommand = subcommand and subcommand:upper()
  frame.subcommand = subcommand and SUBCOMMANDS[frame.command .. " " .. subcommand] and subcommand or nil
end

-- `[u32 total]`, then arguments of `u32` length each that fill it exactly (sections 3.6 and 4.4). `name` is that of the frame's
-- opcode; in ARGV it is the first argument.
local function arguments(reader, frame, at, name)
  local total = reader:u32(at)
  local stop = at + 4 + total
  if stop > FRAME_BYTES_MAX then
    bad("frame-too-long", at)
  elseif total == 0 and not name then
    bad("empty-command", at)
  end
  reader.carried = stop
  reader:node(frame.nodes, { at = at, len = 4, field = "length", value = total, label = "Length of the arguments: " .. total })
  local position, shown, names = name and 1 or 0, {}, { name }
  at = at + 4
  while at < stop do
    if stop - at < 4 then
      bad("length-mismatch", at)
    end
    local len = reader:u32(at)
    if len > stop - at - 4 then
      bad("length-mismatch", at)
    end
    local bytes = reader:body(at, at + 4, len)
    local node = text_node("argument", "Argument " .. position, at, at + 4, bytes, "u32")
    shown[#shown + 1] = not reader:is_full() and node or nil
    reader:node(frame.nodes, node)
    reader:argument(bytes)
    names[#names + 1] = #names < 2 and bytes or nil
    position, at = position + 1, at + 4 + len
  end
  name_command(frame, names[1], names[2])
  mark_keys(shown, name and 1 or 0, reader.argc, frame.command, frame.subcommand)
  return stop
end

-- Core and module commands.
local function command(reader, frame, entry, at)
  frame.command = entry.name
  reader:argument(entry.name)
  if entry.args then
    return arguments(reader, frame, at, entry.name)
  end
  local first = entry.fields[1]
  if first and first.f == "key" and frame.channel == 0 and reader:u16(at) == 0 then
    frame.is_zero = true
  end
  return walk(reader, entry.fields, at, frame.nodes)
end

-- Decodes the request in `reader` into `frame`; returns its length.
function request.decode(reader, frame)
  local opcode = frame.opcode
  if opcode <= 0x07FF then
    frame.kind = "core"
    return command(reader, frame, CORE[opcode] or bad("unknown-opcode", 0), 4)
  elseif opcode == 0xF000 then
    frame.kind = "module"
    reader:take(4, 4)
    local module, number = reader:u16(4), reader:u16(6)
    reader:node(frame.nodes, { at = 4, len = 2, field = "module", value = module })
    reader:node(frame.nodes, { at = 6, len = 2, field = "module_command", value = number })
    local entry = MODULES[module * 65536 + number] or bad("unknown-opcode", 4)
    return command(reader, frame, entry, 8)
  elseif opcode == 0xF001 then
    frame.kind = "argv"
    return arguments(reader, frame, 4, nil)
  elseif opcode >= 0x8000 and opcode <= 0x8FFF or opcode == 0xFF10 or opcode == 0xFF04 then
    bad("wrong-direction", 0)
  elseif opcode < 0xF000 then
    bad("unknown-opcode", 0)
  end
  return control.decode(reader, frame)
end
