-- Channels (their functions are Rust's) and messages: one object for each side, since what they speak of is the stream at hand.
local txn, http, fetches, Channel, start_line, part, body_at_hand, exact_length = ...
local error, pairs, setmetatable, tostring, type = error, pairs, setmetatable, tostring, type

local HTTPMessage = {}
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
-- Of a body an action sees what has come. All of it goes on as it is, so that its length stays.
function HTTPMessage:eom()
  return (body_at_hand(self.is_response))
end
function HTTPMessage:may_recv()
  return not self:eom()
end
function HTTPMessage:is_full()
  return false
end
function HTTPMessage:input()
  local _, bytes = body_at_hand(self.is_response)
  return bytes
end
function HTTPMessage:output()
  return 0
end
function HTTPMessage:set_body_len(length)
  if length ~= "chunked" and (type(length) ~= "number" or length < 0) then
    error("HTTPMessage.set_body_len expects a number that is not negative, or 'chunked'", 2)
  end
  -- Frames follow from the message, whatever its lines say.
  if length ~= "chunked" and length ~= exact_length(self.is_response) then
    error("HTTPMessage.set_body_len(" .. tostring(length) .. ") is not the length of the body, and only filters change bodies", 2)
  end
  return true
end
for _, name in pairs({ "append", "forward", "insert", "prepend", "remove", "send", "set", "set_eom", "unset_eom" }) do
  HTTPMessage[name] = function()
    error("HTTPMessage." .. name .. " is not available in terse: only filters change bodies, and those are not written in Lua", 2)
  end
end

local channel, message = { __index = Channel, __metatable = false }, { __index = HTTPMessage, __metatable = false }
txn.req = setmetatable({ is_response = false }, channel)
txn.res = setmetatable({ is_response = true }, channel)
txn.http_req = setmetatable({ is_response = false, channel = txn.req }, message)
txn.http_res = setmetatable({ is_response = true, channel = txn.res }, message)
