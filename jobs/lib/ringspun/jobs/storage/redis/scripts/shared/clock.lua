-- The server's clock: the seconds as a number and as a score, and as the time in an entry, which is in milliseconds for "1".
local function clock(milliseconds)
  local time = redis.call('TIME')
  local now = time[1] + time[2] / 1000000
  local score = string.format('%.6f', now)
  return now, score, milliseconds == '1' and string.format('%.0f', now * 1000) or score
end
