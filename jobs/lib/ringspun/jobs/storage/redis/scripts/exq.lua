-- with: keys clock jobs history
-- Puts what a dead node of Exq has in flight back in front of its queue.
-- ARGV: the namespace's prefix, the node, the queue, how many at most, seconds that the node has to be silent,
-- milliseconds to keep a history.
-- Returns the entries.
--
-- Every few seconds a node of Exq sets a key that lasts for a minute; a node that has only just started has perhaps none yet:
-- https://github.com/akira/exq/blob/master/lib/exq/redis/job_stat.ex (node_ping)
local node, queue, room, silent = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local list, seen = backup(node, queue), key('ringspun:silent:' .. node)
local moved, now, score = {}, clock()
begin_writing()
if redis.call('SISMEMBER', key('ringspun:nodes'), node) == 1 then return moved end
if redis.call('EXISTS', unpack(keys_of_exq(node))) > 0 then
  redis.call('DEL', seen)
  return moved
end
-- The note of the silence expires: a node whose list is empty is not looked at again.
redis.call('SET', seen, string.format('%.6f', now), 'NX', 'EX', math.ceil(silent * 5) + 60)
if now - redis.call('GET', seen) < silent then return moved end
while #moved < room do
  local entry = redis.call('LMOVE', list, queue_key(queue), 'LEFT', 'RIGHT')
  if not entry then break end
  redis.call('SADD', key('queues'), queue)
  note(jid_of(entry), '"kind":"taken_over"', node, score, ARGV[6])
  moved[#moved + 1] = entry
end
if redis.call('EXISTS', list) == 0 then redis.call('DEL', seen) end
return moved
