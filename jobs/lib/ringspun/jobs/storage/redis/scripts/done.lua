-- with: keys clock count jobs trials priority wake push history taken limits
-- Takes jobs out of a node's lists and, if they were there, puts them where they go, and stores the jobs that follow them.
-- ARGV: the namespace's prefix, the node, milliseconds within which a push with a lock may be sent again, milliseconds to keep a
-- history, then nine for each:
-- queue, entry, jid, its lock or "", where it goes to ("", "retry", "schedule", "dead" or a queue's key), the new entry (or of one
-- that is done its result), seconds from now on (or for a queue 1 if the job has ended its process, and for a result the
-- milliseconds to keep it, 0 if there is none), what its history is to say or "", how many jobs follow it; and six for each of
-- these.
-- Returns 1 for each that was there, and else 0.
--
-- A job that cannot be put where it goes stays in the list, as one does whose followers have no place to go. Its error is the
-- whole call's, after all others are done.
local node, again, lasts = ARGV[2], ARGV[3], ARGV[4]
local now, score = clock()
local processed, failed, gone, plain = 0, 0, {}, {}
local refused
local answers = {}

local function put(to, entry, delay)
  if to == '' then return true end
  local answer
  if to == 'dead' then
    answer = redis.pcall('ZADD', key(to), score, entry)
  elseif to == 'retry' or to == 'schedule' then
    answer = redis.pcall('ZADD', key(to), string.format('%.6f', now + delay), entry)
    if type(answer) ~= 'table' then wake(now + delay, now) end
  else
    local queue = string.sub(to, #'queue:' + 1)
    answer = line_up(queue, entry, 'RPUSH')
    redis.pcall('SADD', key('queues'), queue)
  end
  if type(answer) ~= 'table' then return true end
  refused = answer.err
end

-- See Storage#begin_quarantined.
local function died(jid)
  local trials = trials_of(jid)
  trials.deaths = trials.deaths + 1
  keep_trials(jid, trials)
end

local function may_be(place, wanted)
  local found = redis.call('TYPE', place).ok
  if found == 'none' or found == wanted then return true end
  refused = 'WRONGTYPE ' .. place .. ' holds a ' .. found
  return false
end

-- Whether each of these jobs has a place to go. Looked at before the first is stored, for what is stored stays.
local function have_places(first, last)
  for i = first, last, 6 do
    local later, lock = ARGV[i + 3] ~= '', ARGV[i + 4]
    if not may_be(later and key('schedule') or queue_key(ARGV[i]), later and 'zset' or 'list') then return false end
    if lock ~= '' and not may_be(lock_key(lock), 'string') then return false end
  end
  return true
end

local i = 5
while i <= #ARGV do
  local queue, entry, jid, lock, to = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local first = i + 9
  local last = first + ARGV[i + 8] * 6 - 1
  local list = backup(node, queue)
  local there = take(list, entry)
  answers[#answers + 1] = there
  if there == 1 and not (have_places(first, last) and put(to, ARGV[i + 5], tonumber(ARGV[i + 6]))) then
    redis.call('RPUSH', list, entry)
  elseif there == 0 then
    old_run_ended(node, queue, jid)
  else
    if to == '' or to == 'retry' or to == 'dead' then processed = processed + 1 end
    if to == 'retry' or to == 'dead' then failed = failed + 1 end
    -- The job has left the list, so nothing may raise before its followers are stored.
    if lock ~= '' and redis.pcall('GET', lock_key(lock)) == jid then redis.pcall('DEL', lock_key(lock)) end
    for follower = first, last, 6 do push(follower, now, again) end
    if to == '' and ARGV[i + 6] ~= '0' then
      redis.pcall('SET', key('ringspun:result:' .. jid), ARGV[i + 5], 'PX', ARGV[i + 6])
    end
    local queued = string.find(to, '^queue:')
    if queue == QUARANTINE then leave_place(entry, to == 'queue:' .. QUARANTINE) end
    if jid == '' and not queued then jid = jid_of(entry) end
    if ARGV[i + 7] ~= '' then
      note(jid, ARGV[i + 7], node, score, lasts)
    elseif to == '' then
      plain[#plain + 1] = jid
    end
    if queued and ARGV[i + 6] == '1' then
      died(jid)
    else
      gone[#gone + 1] = jid
    end
  end
  i = last + 1
end
deal()
note_done(plain, node, score, lasts)
count('processed', processed)
count('failed', failed)
forget_runs(gone)
if refused then return redis.error_reply(refused) end
return answers
