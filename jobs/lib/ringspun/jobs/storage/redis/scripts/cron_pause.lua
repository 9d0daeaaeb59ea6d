-- with: keys cron
-- Pauses an entry, or has it go on. ARGV: the namespace's prefix, its name, "1" or "0".
-- Returns 1 if that is a change, 0 if it is none, and nothing if there is no such entry.
local entry = cron_key(ARGV[2])
local last, paused = unpack(redis.call('HMGET', entry, 'tick', 'paused'))
if not last then return false end
redis.call('HSET', entry, 'paused', ARGV[3])
return (paused or '0') == ARGV[3] and 0 or 1
