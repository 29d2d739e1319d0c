-- Channels and messages: one object for each side, since what they speak of is the stream at hand.
local txn, http, fetches, is_http, start_line, part, first_line = ...
local error, pairs, setmetatable = error, pairs, setmetatable

local function absent(class, names)
  for _, name in pairs(names) do
    class[name] = function()
      error(class.class .. "." .. name .. " is not available in terse: only filters change bytes, and those are not written in Lua", 2)
    end
  end
end

local Channel = { class = "Channel" }
local function bytes(channel)
  if is_http() then error("the bytes of a channel are not a script's in mode http", 3) end
  if channel.is_response then return fetches:res_payload(0, 0) end
  return fetches:req_payload(0, 0)
end
function Channel:data(offset, length)
  return part(bytes(self), offset, length)
end
function Channel:dup()
  return bytes(self)
end
function Channel:line(offset, length)
  return first_line(part(bytes(self), offset, length))
end
function Channel:input()
  if is_http() then return 0 end
  return #(bytes(self) or "")
end
Channel.get_in_len = Channel.input
function Channel:output()
  return 0
end
Channel.get_out_len = Channel.output
function Channel:is_resp()
  return self.is_response
end
function Channel:is_full()
  return false
end
function Channel:may_recv()
  return true
end
absent(Channel, { "append", "forward", "get", "getline", "insert", "prepend", "remove", "send", "set" })

local HTTPMessage = { class = "HTTPMessage" }
local function side(message, name)
  return http[(message.is_response and "res_" or "req_") .. name]
end
for _, name in pairs({ "add_header", "set_header", "del_header", "rep_header", "rep_value", "get_headers" }) do
  HTTPMessage[name] = function(message, ...)
    return side(message, name)(http, ...)
  end
end
for _, name in pairs({ "set_method", "set_path", "set_query", "set_uri" }) do
  HTTPMessage[name] = function(message, value)
    if message.is_response then error("HTTPMessage." .. name .. " is for requests", 2) end
    return http["req_" .. name](http, value)
  end
end
function HTTPMessage:set_status(status, reason)
  if not self.is_response then error("HTTPMessage.set_status is for responses", 2) end
  return http:res_set_status(status, reason)
end
function HTTPMessage:get_stline()
  return start_line(self.is_response)
end
function HTTPMessage:is_resp()
  return self.is_response
end
function HTTPMessage:body(offset, length)
  if self.is_response then return part(fetches:res_body(), offset, length) end
  return part(fetches:req_body(), offset, length)
end
absent(HTTPMessage, {
  "append", "eom", "forward", "input", "insert", "is_full", "may_recv", "output", "prepend", "remove", "send", "set", "set_body_len",
  "set_eom", "unset_eom",
})

local channel, message = { __index = Channel, __metatable = false }, { __index = HTTPMessage, __metatable = false }
txn.req = setmetatable({ is_response = false }, channel)
txn.res = setmetatable({ is_response = true }, channel)
txn.http_req = setmetatable({ is_response = false }, message)
txn.http_res = setmetatable({ is_response = true }, message)
