-- ARGV: the lock's key, the jid, milliseconds. Answers who else holds it.
if redis.call('SET', ARGV[1], ARGV[2], 'NX', 'PX', ARGV[3]) then return false end
local holder = redis.call('GET', ARGV[1])
if holder ~= ARGV[2] then return holder end
redis.call('PEXPIRE', ARGV[1], ARGV[3])
return false
