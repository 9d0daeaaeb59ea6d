-- with: keys clock jobs history
-- Puts what a node has in flight back in front of its queues, and forgets the node.
-- ARGV: the namespace's prefix, the node, the quarantine, milliseconds to keep a history.
local node, quarantine = ARGV[2], ARGV[3]
local _, score = clock()
local lists = lists_of(node)
begin_writing(node)
for _, queue in ipairs(redis.call('SMEMBERS', lists)) do
  local list, to = backup(node, queue), queue_key(queue)
  while true do
    local entry = redis.call('LMOVE', list, to, 'LEFT', 'RIGHT')
    if not entry then break end
    local jid = jid_of(entry)
    if queue == quarantine then redis.call('HDEL', key('ringspun:alone'), jid) end
    note(jid, '"kind":"returned"', node, score, ARGV[4])
    redis.call('SADD', key('queues'), queue)
  end
end
redis.call('SREM', key('ringspun:nodes'), node)
redis.call('DEL', lists, key('ringspun:alive:' .. node), unpack(keys_of_exq(node .. '-signals')))
