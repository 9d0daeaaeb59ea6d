-- with: keys jobs
-- Puts what a node has in flight back in front of its queues, and forgets the node.
-- ARGV: the namespace's prefix, the node, the quarantine.
local node, quarantine = ARGV[2], ARGV[3]
local lists = lists_of(node)
begin_writing(node)
for _, queue in ipairs(redis.call('SMEMBERS', lists)) do
  local list, to = backup(node, queue), queue_key(queue)
  while true do
    local entry = redis.call('LMOVE', list, to, 'LEFT', 'RIGHT')
    if not entry then break end
    local job = queue == quarantine and job_of(entry)
    if job then redis.call('HDEL', key('ringspun:alone'), job['jid']) end
    redis.call('SADD', key('queues'), queue)
  end
end
redis.call('SREM', key('ringspun:nodes'), node)
redis.call('DEL', lists, key('ringspun:alive:' .. node), unpack(keys_of_exq(node .. '-signals')))
