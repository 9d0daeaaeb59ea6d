-- with: keys clock jobs history members limits leases
-- Moves what is in flight at nodes without a lease into the quarantine; entries that are no jobs go back to their queues.
-- ARGV: the namespace's prefix, how many jobs at most, the quarantine, milliseconds after which such a node without jobs is
-- forgotten, milliseconds to keep a history, for how many seconds a place is held. Returns four for each job: node, queue, entry, where it went.
local room, quarantine, stays, lasts = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5]
local now, score = clock()
local registry, recovered, gone = key('ringspun:nodes'), key('ringspun:recovered'), key('ringspun:gone')
local moved = {}
begin_writing()
note_outage(now)
if hold() ~= tonumber(ARGV[6]) then redis.call('SET', key('ringspun:hold'), ARGV[6]) end

-- Adds the queue to a job that names none, for in the quarantine nothing else says where it belongs. Its other bytes stay. A null
-- goes, for readers take the last of two members.
local function with_queue(entry, queue)
  local named = cjson.decode(entry)['queue']
  if named ~= nil and named ~= cjson.null then return entry end
  if named == cjson.null then entry = without(entry, { queue = true }) end
  local _, brace = string.find(entry, '^%s*{')
  return '{"queue":' .. cjson.encode(queue) .. ',' .. string.sub(entry, brace + 1)
end

local function put(node, queue, entry)
  local job = job_of(entry)
  if not job then
    redis.call('RPUSH', queue_key(queue), entry)
    redis.call('SADD', key('queues'), queue)
    return 'queue'
  end
  if queue ~= quarantine then
    redis.call('HINCRBY', recovered, job['jid'], 1)
    entry = with_queue(entry, queue)
  end
  keep_place(node, queue, job_of(entry), now)
  note(job['jid'], '"kind":"taken_over"', node, score, lasts)
  redis.call('LPUSH', queue_key(quarantine), entry)
  redis.call('SADD', key('queues'), quarantine)
  return 'quarantine'
end

local function empty(node, queue)
  local list = backup(node, queue)
  while room > 0 do
    local entry = redis.call('LINDEX', list, -1)
    if not entry then return true end
    for _, each in ipairs({ node, queue, entry, put(node, queue, entry) }) do moved[#moved + 1] = each end
    redis.call('RPOP', list)
    room = room - 1
  end
  return false
end

-- Not at once: a late command of the node may still put something into its lists.
local function forget(node)
  local since = redis.call('HGET', gone, node)
  if not since then
    since = now * 1000
    redis.call('HSET', gone, node, string.format('%.0f', since))
  end
  if now * 1000 - since < stays then return end
  redis.call('SREM', registry, node)
  for _, set in ipairs(keys_of_exq('processes')) do redis.call('SREM', set, node) end
  redis.call('DEL', lists_of(node))
  redis.call('HDEL', gone, node)
end

for _, node in ipairs(redis.call('SMEMBERS', registry)) do
  if room > 0 and redis.call('EXISTS', lease_key(node)) == 0 then
    local before = room
    forget_lease(node)
    for _, queue in ipairs(redis.call('SMEMBERS', lists_of(node))) do empty(node, queue) end
    if room < before then
      redis.call('INCRBY', key('ringspun:losses:' .. node), before - room)
      redis.call('PEXPIRE', key('ringspun:losses:' .. node), DAY)
      redis.call('HDEL', gone, node)
    else
      forget(node)
    end
  end
end
return moved
