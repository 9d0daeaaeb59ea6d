-- with: keys clock jobs history priority limits leases
-- Puts what a node has in flight back in front of its queues, and forgets the node.
-- ARGV: the namespace's prefix, the node, the quarantine, milliseconds to keep a history.
local node, quarantine = ARGV[2], ARGV[3]
local _, score = clock()
local lists = lists_of(node)
begin_writing(node)
for _, queue in ipairs(redis.call('SMEMBERS', lists)) do
  local list = backup(node, queue)
  while true do
    local entry = redis.call('LINDEX', list, 0)
    if not entry then break end
    local pushed = line_up(queue, entry, 'RPUSH')
    if type(pushed) == 'table' then
      deal()
      return redis.error_reply(pushed.err)
    end
    redis.call('LPOP', list)
    local jid = jid_of(entry)
    if queue == quarantine then
      redis.call('HDEL', key('ringspun:alone'), jid)
      leave_place(entry, true)
    end
    note(jid, '"kind":"returned"', node, score, ARGV[4])
    redis.call('SADD', key('queues'), queue)
  end
end
deal()
all_old_runs_ended(node)
redis.call('SREM', key('ringspun:nodes'), node)
forget_lease(node)
redis.call('DEL', lists, key('ringspun:losses:' .. node), unpack(keys_of_exq(node .. '-signals')))
