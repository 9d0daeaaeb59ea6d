-- The server's time: seconds as a number, as a score, and as the text for an entry, which is in milliseconds if the argument is
-- "1".
local function clock(milliseconds)
  local time = redis.call('TIME')
  local now = time[1] + time[2] / 1000000
  local score = string.format('%.6f', now)
  return now, score, milliseconds == '1' and string.format('%.0f', now * 1000) or score
end
