-- ARGV: the lock's key, the jid. Answers 1 if it was that one's.
if redis.call('GET', ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('DEL', ARGV[1])
