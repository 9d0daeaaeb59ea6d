-- with: keys priority
-- Reads entries of a queue. ARGV: the namespace's prefix, the queue, from where on (0 is the one that is fetched next), how many;
-- and 1 if 0 is the one that is fetched last, and those before it follow.
local from, count, from_end = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local found = {}
if redis.call('SISMEMBER', prioritized, ARGV[2]) == 1 then
  begin_writing()
  sort(ARGV[2])
end
local lists = lists_of_queue(ARGV[2])
for number = 1, #lists do
  local list = lists[from_end and #lists + 1 - number or number]
  if from_end then
    for _, entry in ipairs(redis.call('LRANGE', list, from, from + count - #found - 1)) do found[#found + 1] = entry end
  else
    local some = redis.call('LRANGE', list, -(from + count - #found), -(from + 1))
    for i = #some, 1, -1 do found[#found + 1] = some[i] end
  end
  if #found == count then break end
  from = math.max(from - redis.call('LLEN', list), 0)
end
deal()
return found
