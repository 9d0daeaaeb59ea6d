-- with: keys priority
-- Reads entries of a queue. ARGV: the namespace's prefix, the queue, from where on (0 is the one that is fetched next), how many.
local from, count = tonumber(ARGV[3]), tonumber(ARGV[4])
local found = {}
if redis.call('SISMEMBER', prioritized, ARGV[2]) == 1 then
  begin_writing()
  sort(ARGV[2])
end
for _, list in ipairs(lists_of_queue(ARGV[2])) do
  local some = redis.call('LRANGE', list, -(from + count - #found), -(from + 1))
  for i = #some, 1, -1 do found[#found + 1] = some[i] end
  if #found == count then break end
  from = math.max(from - redis.call('LLEN', list), 0)
end
deal()
return found
