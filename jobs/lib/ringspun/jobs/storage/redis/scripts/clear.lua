-- with: keys
-- Forgets all entries. ARGV: the namespace's prefix, "queue" or "set", and its key. Returns how many there were.
local size = redis.call(ARGV[2] == 'set' and 'ZCARD' or 'LLEN', ARGV[3])
redis.call('UNLINK', ARGV[3])
return size
