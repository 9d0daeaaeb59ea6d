-- with: clock jobs
-- Takes what is in flight at nodes without a lease and puts it where others get it. ARGV: the namespace's prefix, how many jobs
-- at most, the quarantine, how many deaths alone are allowed, milliseconds after which a node without jobs is forgotten. Answers
-- four for each job: node, queue, entry, where it went.
local ns, room, quarantine, deaths, stays = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local now, score = clock()
local nodes, alone = ns .. 'ringspun:nodes', ns .. 'ringspun:alone'
local recovered, gone = ns .. 'ringspun:recovered', ns .. 'ringspun:gone'
local moved = {}
redis.call('HDEL', gone, '') -- see fetch.lua

-- The lock of a job that will not run any more, unless it is to stay until its end.
local function release(job)
  local token = job['unique_token']
  if type(token) ~= 'string' or job['unique_until'] == 'expiry' then return end
  if redis.call('GET', ns .. 'unique:' .. token) == job['jid'] then redis.call('DEL', ns .. 'unique:' .. token) end
end

local function put(queue, entry)
  local job = job_of(entry)
  if not job then
    redis.call('RPUSH', ns .. 'queue:' .. queue, entry)
    redis.call('SADD', ns .. 'queues', queue)
    return 'queue'
  end
  local jid = job['jid']
  if queue == quarantine and tonumber(string.match(redis.call('HGET', alone, jid) or '0', '^%d+')) >= deaths then
    redis.call('ZADD', ns .. 'dead', score, entry)
    redis.call('HDEL', alone, jid)
    redis.call('HDEL', recovered, jid)
    release(job)
    return 'dead'
  end
  if queue ~= quarantine then redis.call('HINCRBY', recovered, jid, 1) end
  redis.call('LPUSH', ns .. 'queue:' .. quarantine, entry)
  redis.call('SADD', ns .. 'queues', quarantine)
  return 'quarantine'
end

local function empty(node, queue)
  local list = ns .. 'queue:backup::' .. node .. '::' .. queue
  while room > 0 do
    local entry = redis.call('LINDEX', list, -1)
    if not entry then return true end
    for _, each in ipairs({ node, queue, entry, put(queue, entry) }) do moved[#moved + 1] = each end
    redis.call('RPOP', list)
    room = room - 1
  end
  return false
end

-- A command of that node's may be on its way still, and put something into its lists when it comes.
local function forget(node)
  local since = redis.call('HGET', gone, node)
  if not since then
    since = now * 1000
    redis.call('HSET', gone, node, string.format('%.0f', since))
  end
  if now * 1000 - since < stays then return end
  redis.call('SREM', nodes, node)
  redis.call('SREM', ns .. 'processes', node)
  if ns == '' then redis.call('SREM', ':processes', node) end -- see announce.lua
  redis.call('DEL', ns .. 'ringspun:lists:' .. node)
  redis.call('HDEL', gone, node)
end

for _, node in ipairs(redis.call('SMEMBERS', nodes)) do
  if room > 0 and redis.call('EXISTS', ns .. 'ringspun:alive:' .. node) == 0 then
    local before = room
    for _, queue in ipairs(redis.call('SMEMBERS', ns .. 'ringspun:lists:' .. node)) do empty(node, queue) end
    if room < before then
      redis.call('HDEL', gone, node)
    else
      forget(node)
    end
  end
end
return moved
