-- Proxies, their servers, listeners and stick tables: objects that hold names and look everything else up when they are asked.
-- Of Lua's libraries only the basic one is used: 'tune.lua.openlibs' may leave out the others.
local ask, names, fact, stats, table_info, entries, subscribe = ...
local core, error, ipairs, next, pairs, setmetatable, tostring, type =
  core, error, ipairs, next, pairs, setmetatable, tostring, type

-- A table whose entries are made when they are looked at.
local function listable(list, make)
  return setmetatable({}, {
    __index = function(_, name) return make(name) end,
    __newindex = function() error("it cannot be changed", 2) end,
    __pairs = function(object)
      local all, at = list(), 0
      return function()
        local name, made
        repeat
          at = at + 1
          name = all[at]
          made = name and make(name)
        until name == nil or made ~= nil
        return name, made
      end, object, nil
    end,
    __len = function() return #list() end,
    __metatable = false,
  })
end

local Server = {}
local server_meta = { __metatable = false }
function server_meta.__index(server, key)
  if key == "name" or key == "puid" then return fact("server", server[0], server[1], key) end
  return Server[key]
end

local function server_of(backend, name)
  local id = fact("server", backend, name, "puid")
  return id and setmetatable({ [0] = backend, "#" .. id }, server_meta)
end
local function path(server)
  return server[0] .. "/" .. server[1]
end

for name, what in pairs({
  get_name = "name", get_puid = "puid", get_rid = "rid", is_draining = "is_draining", is_backup = "is_backup",
  is_dynamic = "is_dynamic", get_cur_sess = "sessions", get_pend_conn = "pending", get_maxconn = "maxconn",
  get_weight = "weight", get_addr = "address",
}) do
  Server[name] = function(server) return fact("server", server[0], server[1], what) end
end
-- As in HAProxy, an order that means nothing to a server is no mistake.
for name, words in pairs({
  set_drain = { "state", "drain" }, set_maint = { "state", "maint" }, set_ready = { "state", "ready" },
  check_force_up = { "health", "up" }, check_force_nolb = { "health", "stopping" }, check_force_down = { "health", "down" },
  agent_force_up = { "agent", "up" }, agent_force_down = { "agent", "down" },
}) do
  Server[name] = function(server) ask("set", "server", path(server), words[1], words[2]) end
end
for name, words in pairs({
  check_enable = { "enable", "health" }, check_disable = { "disable", "health" },
  agent_enable = { "enable", "agent" }, agent_disable = { "disable", "agent" },
}) do
  Server[name] = function(server) ask(words[1], words[2], path(server)) end
end
-- These say what is wrong.
local function reason(...)
  local answer, wrong = ask(...)
  return not answer and wrong or nil
end
function Server.set_weight(server, weight)
  return reason("set", "server", path(server), "weight", tostring(weight))
end
function Server.set_maxconn(server, most)
  return reason("set", "maxconn", "server", path(server), tostring(most))
end
-- What has changed, or what is wrong.
function Server.set_addr(server, address, port)
  local said, wrong
  if port == nil then
    said, wrong = ask("set", "server", path(server), "addr", address)
  else
    said, wrong = ask("set", "server", path(server), "addr", address, "port", tostring(port))
  end
  return said or wrong
end
function Server.shut_sess(server)
  ask("shutdown", "sessions", "server", path(server))
end
function Server.get_stats(server)
  return stats("server", server[0], server[1])
end
function Server.get_proxy(server)
  return core.backends[server[0]]
end
function Server.tracking(server)
  local backend = fact("server", server[0], server[1], "tracked_backend")
  return backend and server_of(backend, fact("server", server[0], server[1], "tracked_server"))
end
function Server.get_trackers(server)
  local trackers, own_name = {}, Server.get_name(server)
  for _, backend in ipairs(names("backend")) do
    for _, name in ipairs(names("server", backend)) do
      if fact("server", backend, name, "tracked_backend") == server[0]
        and fact("server", backend, name, "tracked_server") == own_name
      then
        trackers[#trackers + 1] = server_of(backend, name)
      end
    end
  end
  return trackers
end
function Server.event_sub(server, types, call)
  local id = fact("server", server[0], server[1], "puid")
  if id == nil then error("Server.event_sub: the server is gone", 2) end
  return subscribe[1](server[0], id, types, call)
end

local Listener = {}
local listener_meta = { __index = Listener, __metatable = false }
function Listener.get_stats(listener)
  return stats("listener", listener[0], listener[1])
end

-- Stick tables, as 'show table' shows them.
local StickTable = {}
local table_meta = { __index = StickTable, __metatable = false }

local function found(...)
  local all, wrong = entries(...)
  if not all then error(wrong, 3) end
  return all
end
function StickTable.info(object)
  return table_info(object[0])
end
function StickTable.lookup(object, key)
  local _, data = next(found(object[0], { "key", tostring(key) }))
  return data
end
function StickTable.dump(object, filter)
  local words = {}
  if filter ~= nil and type(filter) ~= "table" then error("a table of filters is expected", 2) end
  for at, one in ipairs(filter or {}) do
    if type(one) ~= "table" or #one ~= 3 then error("filter " .. at .. " is no list of a column, an operator and a number", 2) end
    words[#words + 1] = "data." .. tostring(one[1])
    words[#words + 1] = tostring(one[2])
    words[#words + 1] = tostring(one[3])
  end
  return found(object[0], words)
end

local Proxy = {}
local proxy_meta = { __metatable = false }
function proxy_meta.__index(proxy, key)
  local name = proxy[0]
  if key == "name" then return name end
  if key == "uuid" then return fact("proxy", name, proxy[1], "uuid") end
  if key == "servers" then
    return listable(function() return names("server", name) end, function(server) return server_of(name, server) end)
  end
  if key == "listeners" then
    local listeners = {}
    for _, listener in ipairs(names("listener", name)) do
      listeners[listener] = setmetatable({ [0] = name, listener }, listener_meta)
    end
    return listeners
  end
  if key == "stktable" then return table_info(name) and setmetatable({ [0] = name }, table_meta) or nil end
  return Proxy[key]
end

-- The half that is meant of a name that several proxies have: 'backend', 'frontend', or any.
local function proxy_of(name, half)
  return fact("proxy", name, half, "uuid") and setmetatable({ [0] = name, half }, proxy_meta)
end
for name, what in pairs({
  get_uuid = "uuid", get_cap = "cap", get_mode = "mode", get_srv_act = "active", get_srv_bck = "backup",
}) do
  Proxy[name] = function(proxy) return fact("proxy", proxy[0], proxy[1], what) end
end
function Proxy.get_name(proxy)
  return proxy[0]
end
function Proxy.get_stats(proxy)
  return stats("proxy", proxy[0], proxy[1])
end
function Proxy.pause(proxy)
  ask("disable", "frontend", proxy[0])
end
function Proxy.resume(proxy)
  ask("enable", "frontend", proxy[0])
end
function Proxy.stop(proxy)
  ask("shutdown", "frontend", proxy[0])
end
function Proxy.shut_bcksess(proxy)
  for _, server in pairs(proxy.servers) do
    if server:is_backup() then server:shut_sess() end
  end
end
function Proxy.get_mailers()
  -- 'mailers' sections are refused: there are none.
  return nil
end

for field, half in pairs({ proxies = "any", backends = "backend", frontends = "frontend" }) do
  core[field] = listable(function() return names(half) end, function(name) return proxy_of(name, half) end)
end
