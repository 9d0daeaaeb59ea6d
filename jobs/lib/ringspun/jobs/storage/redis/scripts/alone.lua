-- Counts a run that begins. ARGV: the namespace's prefix, the node, the queue, the entry, its jid. Answers how many have begun and
-- not ended; 0 if the job is not in flight there.
local ns = ARGV[1]
redis.call('HDEL', ns .. 'ringspun:gone', '') -- see fetch.lua
if not redis.call('LPOS', ns .. 'queue:backup::' .. ARGV[2] .. '::' .. ARGV[3], ARGV[4], 'RANK', -1) then return 0 end
return redis.call('HINCRBY', ns .. 'ringspun:alone', ARGV[5], 1)
