-- Queues, and waiting for them. The bell of a coroutine is what 'core.wait' waits for.
local new_bell = ...
local error, running, setmetatable = error, coroutine.running, setmetatable
local bells = setmetatable({}, { __mode = "k" })

local function own_bell()
  local thread = running()
  local bell = bells[thread]
  if bell == nil then
    bell = new_bell()
    bells[thread] = bell
  end
  return bell
end

function core.wait(milliseconds)
  own_bell():hear(milliseconds)
end

local Queue = {}
local meta = { __index = Queue, __metatable = false }

function core.queue()
  return setmetatable({ first = 1, last = 0, items = {}, alarms = {}, bell = new_bell() }, meta)
end
function Queue:size()
  return self.last - self.first + 1
end
function Queue:push(item)
  if item == nil then error("unexpected argument: a queue takes anything but nil", 2) end
  self.last = self.last + 1
  self.items[self.last] = item
  self.bell:ring()
  -- An alarm is for one push.
  local alarms = self.alarms
  self.alarms = {}
  for bell in next, alarms do bell:ring() end
  return true
end
function Queue:pop()
  local first = self.first
  if first > self.last then return nil end
  local item = self.items[first]
  self.items[first] = nil
  if first == self.last then
    self.first, self.last = 1, 0
  else
    self.first = first + 1
  end
  return item
end
function Queue:pop_wait()
  while true do
    local item = self:pop()
    if item ~= nil then
      -- Of several that wait, the next one looks as well.
      if self.last >= self.first then self.bell:ring() end
      return item
    end
    self.bell:hear()
  end
end
function Queue:alarm()
  self.alarms[own_bell()] = true
end
