-- with: keys priority
-- Forgets all entries. ARGV: the namespace's prefix, "queue" or "set", and its name. Returns how many there were.
local name = ARGV[3]
local size = 0
begin_writing()
if ARGV[2] == 'set' then
  size = redis.call('ZCARD', key(name))
  redis.call('UNLINK', key(name))
else
  for _, list in ipairs(lists_of_queue(name)) do
    size = size + redis.call('LLEN', list)
    redis.call('UNLINK', list)
  end
  redis.call('DEL', levels_key(name))
  redis.call('SREM', prioritized, name)
end
return size
