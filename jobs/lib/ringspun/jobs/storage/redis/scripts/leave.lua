-- with: keys jobs
-- Gives back what a node has in flight and forgets the node. ARGV: the namespace's prefix, the node, the quarantine.
local node, quarantine = ARGV[2], ARGV[3]
local lists = lists_of(node)
begin_writing(node)
for _, queue in ipairs(redis.call('SMEMBERS', lists)) do
  local list, to = backup(node, queue), queue_key(queue)
  while true do
    local entry = redis.call('LMOVE', list, to, 'LEFT', 'RIGHT')
    if not entry then break end
    local job = queue == quarantine and job_of(entry)
    if job then redis.call('HDEL', ns .. 'ringspun:alone', job['jid']) end
    redis.call('SADD', ns .. 'queues', queue)
  end
end
redis.call('SREM', ns .. 'ringspun:nodes', node)
redis.call('DEL', lists, ns .. 'ringspun:alive:' .. node, ns .. node .. '-signals')
if ns == '' then redis.call('DEL', ':' .. node .. '-signals') end -- see announce.lua
