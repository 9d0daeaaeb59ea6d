-- with: keys
-- Takes a unique lock, or prolongs it. ARGV: the namespace's prefix, the lock, the jid, milliseconds.
-- Returns another jid that holds it, or nothing.
local lock = lock_key(ARGV[2])
if redis.call('SET', lock, ARGV[3], 'NX', 'PX', ARGV[4]) then return false end
local holder = redis.call('GET', lock)
if holder ~= ARGV[3] then return holder end
redis.call('PEXPIRE', lock, ARGV[4])
return false
