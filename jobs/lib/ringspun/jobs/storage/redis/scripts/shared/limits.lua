-- The limits of queues, see Storage#fetch. A hash has those that were last heard of.
--
-- A job in the quarantine holds a place of its queue, which the queue's set of places has by its jid: while it waits, with the time
-- until when; and while it runs, with that time and RUNNING. A run at a node whose lease has run out may go on: the queue's set of
-- old runs has it by "node queue jid", with the time until when it counts, and a hash has the queue of each.
local QUARANTINE, RUNNING = 'ringspun-quarantine', 100000000000
local DAY = 86400000
local limits, old_queues = key('ringspun:limits'), key('ringspun:old_runs')

local function places_of(queue) return key('ringspun:places:' .. queue) end

local function old_runs_of(queue) return key('ringspun:old_runs:' .. queue) end

local function hold() return tonumber(redis.call('GET', key('ringspun:hold')) or 36) end

local function limit_of(queue) return tonumber(redis.call('HGET', limits, queue) or nil) end

local function score_of(time) return string.format('%.6f', time) end

local nodes

local function running_of(queue)
  nodes = nodes or redis.call('SMEMBERS', key('ringspun:nodes'))
  local running = redis.call('ZCOUNT', places_of(queue), RUNNING, '+inf')
  for _, node in ipairs(nodes) do running = running + redis.call('LLEN', backup(node, queue)) end
  return running
end

local function waiting_of(queue, now) return redis.call('ZCOUNT', places_of(queue), '(' .. score_of(now), '(' .. RUNNING) end

local function count_old_runs(queue, now)
  local all = old_runs_of(queue)
  if redis.call('EXISTS', all) == 0 then return 0 end
  for _, run in ipairs(redis.call('ZRANGEBYSCORE', all, '-inf', score_of(now))) do redis.call('HDEL', old_queues, run) end
  redis.call('ZREMRANGEBYSCORE', all, '-inf', score_of(now))
  return redis.call('ZCARD', all)
end

-- The number of jobs that may begin beside those that have their places.
local function room_beside(taken, queue, limit, now)
  return math.min(limit - taken, 2 * limit - taken - count_old_runs(queue, now))
end

-- Whether a job in the quarantine may begin. If not, it holds a place, so that it is the next.
local function begin_in_place(job, now)
  local queue, jid = job['queue'], job['jid']
  local limit = limit_of(queue)
  local score = limit and tonumber(redis.call('ZSCORE', places_of(queue), jid) or 0)
  if not limit or score >= RUNNING then return true end
  local begins = room_beside(running_of(queue), queue, limit, now) > 0
  redis.call('ZADD', places_of(queue), score_of(begins and RUNNING + math.max(score, now) or now + hold()), jid)
  return begins
end

-- It waits again, for what is left of the time for which it may.
local function stop_in_place(job)
  local score = tonumber(redis.call('ZSCORE', places_of(job['queue']), job['jid']) or 0)
  if score >= RUNNING then redis.call('ZADD', places_of(job['queue']), score_of(score - RUNNING), job['jid']) end
  return score >= RUNNING
end

local function name_of_run(node, from, jid) return node .. ' ' .. from .. ' ' .. jid end

local function add_old_run(node, from, job, now)
  local run, all = name_of_run(node, from, job['jid']), old_runs_of(job['queue'])
  redis.call('ZADD', all, score_of(now + hold()), run)
  redis.call('HSET', old_queues, run, job['queue'])
  redis.call('PEXPIRE', all, DAY)
  redis.call('PEXPIRE', old_queues, DAY)
end

-- A job of a dead node goes to the quarantine.
local function keep_place(node, from, job, now)
  if not limit_of(job['queue']) then return end
  if from == QUARANTINE then
    if stop_in_place(job) then add_old_run(node, from, job, now) end
  else
    add_old_run(node, from, job, now)
    redis.call('ZADD', places_of(job['queue']), 'NX', score_of(now + hold()), job['jid'])
  end
end

-- A job has left the quarantine.
local function give_place_back(entry)
  local job = job_of(entry)
  if job then redis.pcall('ZREM', places_of(job['queue']), job['jid']) end
end

-- A job has left what is in flight of the quarantine. Nothing here may raise: it may be nowhere else by now.
local function leave_place(entry, stays)
  local job = stays and job_of(entry)
  if job then
    pcall(stop_in_place, job)
  else
    give_place_back(entry)
  end
end

-- A node has told how a run has ended whose job was taken away.
local function forget_old_run(run)
  local queue = redis.call('HGET', old_queues, run)
  if not queue then return end
  redis.call('ZREM', old_runs_of(queue), run)
  redis.call('HDEL', old_queues, run)
end

local function old_run_ended(node, from, jid) forget_old_run(name_of_run(node, from, jid)) end

local function all_old_runs_ended(node)
  for _, run in ipairs(redis.call('HKEYS', old_queues)) do
    if string.sub(run, 1, #node + 1) == node .. ' ' then forget_old_run(run) end
  end
end
