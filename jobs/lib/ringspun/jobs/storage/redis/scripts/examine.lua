-- with: keys
-- Looks at the next entries of a list or a set.
-- ARGV: the namespace's prefix, "set", "queue" or "list" (one that is looked at as a whole), its key with the prefix, the position
-- from which on to look, how many entries, after how many bytes to stop, and the text that the entries to return have.
-- Returns how many it has looked at, the next position or nothing at the end, and a list with two for each entry: itself, and its
-- score or "".
local how, where, position, needle = ARGV[2], ARGV[3], ARGV[4], ARGV[7]
local count, room = tonumber(ARGV[5]), tonumber(ARGV[6])
local looked, found = 0, {}

local function see(entry, score)
  looked = looked + 1
  room = room - #entry
  if not string.find(entry, needle, 1, true) then return end
  found[#found + 1] = entry
  found[#found + 1] = score
end

local function of_set()
  repeat
    local answer = redis.call('ZSCAN', where, position, 'COUNT', math.min(100, count - looked))
    position = answer[1]
    for i = 1, #answer[2], 2 do see(answer[2][i], answer[2][i + 1]) end
  until position == '0' or looked >= count or room <= 0
  if position == '0' then position = false end
end

local function of_queue()
  repeat
    local first = tonumber(position)
    local some = redis.call('LRANGE', where, first, first + math.min(100, count - looked) - 1)
    for _, entry in ipairs(some) do see(entry, '') end
    position = #some > 0 and tostring(first + #some)
  until not position or looked >= count or room <= 0
end

if how == 'set' then
  of_set()
elseif how == 'queue' then
  of_queue()
else
  for _, entry in ipairs(redis.call('LRANGE', where, 0, -1)) do see(entry, '') end
  position = false
end
return { looked, position, found }
