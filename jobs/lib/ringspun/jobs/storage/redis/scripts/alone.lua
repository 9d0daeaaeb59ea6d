-- Counts a run that begins. ARGV: the namespace's prefix, the node, the queue, the entry, its jid, which run
-- it is or nothing. Answers how many have begun and not ended; 0 if the job is not in flight there.
local ns, jid = ARGV[1], ARGV[5]
local alone, run = ns .. 'ringspun:alone', ARGV[2] .. '/' .. ARGV[6]
redis.call('HDEL', ns .. 'ringspun:gone', '') -- see fetch.lua
if not redis.call('LPOS', ns .. 'queue:backup::' .. ARGV[2] .. '::' .. ARGV[3], ARGV[4], 'RANK', -1) then return 0 end
local count, last = string.match(redis.call('HGET', alone, jid) or '0', '^(%d+) ?(.*)$')
-- One that is told twice, because the first answer was lost, has begun once.
if ARGV[6] == '' or last ~= run then count = count + 1 end
redis.call('HSET', alone, jid, string.format('%d %s', count, run))
return tonumber(count)
