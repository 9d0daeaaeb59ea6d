-- with: keys
-- Releases a unique lock. ARGV: the namespace's prefix, the lock, the jid. Returns 1 if that jid held it, and else 0.
local lock = lock_key(ARGV[2])
if redis.call('GET', lock) ~= ARGV[3] then return 0 end
return redis.call('DEL', lock)
