
-- Reading ---------------------------------------------------------------------------------------------------------------
--
-- The decoders below know nothing of Wireshark: they read a Lua string and make nodes, which `show` turns into a tree.
-- A node has `at` and `len`, from the start of the frame; `field`, the key of a field in `fields`; `value`, what the field
-- holds; `label`, its line in the tree; `nodes`, what is under it.
--
-- A decoder that finds something wrong raises { error = name of spec/errors.json, at = offset in the frame }, which `decode_frame`
-- catches. One that needs more bytes waits as a coroutine, so that a reply that comes in thousands of packets is decoded once and
-- not once for each; a reader without `waits` raises { need = bytes of the frame that must be there } instead.

local FRAME_BYTES_MAX = 1073741824 -- section 10
local ARGUMENT_BYTES_MAX = 536870912
local NESTING_MAX = 128
local FRAGMENT_BYTES_MAX = 65536
-- Nodes made for one frame. What follows is decoded but not shown: a tree of 65,535 pairs helps nobody and takes minutes.
local NODES_MAX = 3000

-- Declared here because `request` uses it; it is filled further down.
local control = {}

local Reader = {}
Reader.__index = Reader

-- A reader of the frame that starts behind `base` bytes of `bytes`; `stop` is where what may be read ends.
local function new_reader(bytes, base, stop)
  local reader = { bytes = bytes, base = base, available = (stop or #bytes) - base, count = 0, owed = 0 }
  reader.args, reader.argc = {}, 0
  return setmetatable(reader, Reader)
end

local function bad(name, at)
  error({ error = name, at = at }, 0)
end

-- The `len` bytes at `at`; `exact` says that the frame ends with them. `owed` bytes, at least, follow what is being read: one for
-- each element to come.
function Reader:take(at, len, exact)
  if at + len > FRAME_BYTES_MAX then
    bad("frame-too-long", at)
  end
  while at + len > self.available do
    local stopped = { need = self.carried or at + len + self.owed, exact = self.carried ~= nil or exact == true }
    if not self.waits then
      error(stopped, 0)
    end
    coroutine.yield(stopped)
  end
  return self.bytes:sub(self.base + at + 1, self.base + at + len)
end

function Reader:u8(at, exact)
  return self:take(at, 1, exact):byte()
end

function Reader:u16(at)
  local high, low = self:take(at, 2):byte(1, 2)
  return high * 256 + low
end

function Reader:u32(at)
  local a, b, c, d = self:take(at, 4):byte(1, 4)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

-- Eight bytes as a double.
local function to_double(bytes)
  return Struct.unpack(">d", bytes)
end

-- Text of `len` bytes at `at` whose length stands at `length_at`, where errors about it are reported.
function Reader:body(length_at, at, len, exact)
  if len > ARGUMENT_BYTES_MAX then
    bad("argument-too-long", length_at)
  elseif at + len > FRAME_BYTES_MAX then
    bad("frame-too-long", length_at)
  end
  return self:take(at, len, exact)
end

-- Adds a node to `nodes` unless there are too many already; returns it in any case.
function Reader:node(nodes, node)
  self.count = self.count + 1
  if self.count <= NODES_MAX then
    nodes[#nodes + 1] = node
  elseif not self.cut then
    self.cut = true
    nodes[#nodes + 1] = { at = node.at, len = 0, label = "(the rest of this frame is not shown)" }
  end
  return node
end

-- Whether more nodes would be shown.
function Reader:is_full()
  return self.count >= NODES_MAX
end

-- Takes note of an argument of the argument form.
function Reader:argument(bytes)
  self.argc = self.argc + 1
  if self.argc <= text.arguments_max then
    self.args[self.argc] = text.word(bytes)
  end
end

function Reader:words(token)
  for _, word in ipairs(text.words(token)) do
    self:argument(word)
  end
end

-- The argument form on one line.
function Reader:summary()
  local line = table.concat(self.args, " ")
  if self.argc > #self.args then
    line = line .. string.format(" …(%d more)", self.argc - #self.args)
  end
  return line
end

-- A node for text with its length under it; its bytes are those of both.
local function text_node(field, label, length_at, at, bytes, length_type)
  local length = { at = length_at, len = at - length_at, field = "length", value = #bytes }
  length.label = string.format("Length: %d (%s)", #bytes, length_type)
  local node = { at = length_at, len = at - length_at + #bytes, field = field, value = text.value(bytes), nodes = { length } }
  node.label = label .. ": " .. (#bytes == 0 and "(empty)" or text.elide(bytes, 200))
  return node
end
