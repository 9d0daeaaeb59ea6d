-- with: keys clock jobs trials limits
-- Counts runs that begin. A run that is sent again, because the first answer was lost, counts once.
-- ARGV: the namespace's prefix, the node, "1" if they are isolated, then four for each: queue, entry, jid and the number of the
-- node's run. Returns for each its tries, how often it was isolated, and its deaths; nothing if it is not in flight there,
-- and 0 alone if the limit of its queue does not allow it yet.
local node, isolated = ARGV[2], ARGV[3] == '1'
local now = clock()
local answers = {}
begin_writing()
for i = 4, #ARGV, 4 do
  local queue, entry, jid = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local run = (isolated and 'isolated ' or 'shared ') .. node .. '/' .. ARGV[i + 3]
  local answer = {}
  if redis.call('LPOS', backup(node, queue), entry, 'RANK', -1) then
    local job = job_of(entry)
    local begins = not job or begin_in_place(job, now)
    local trials = trials_of(jid)
    if begins and trials.run ~= run then
      local name = isolated and 'isolated' or 'tries'
      trials[name] = trials[name] + 1
    end
    if begins then
      trials.run = run
      keep_trials(jid, trials)
    end
    answer = begins and { trials.tries, trials.isolated, trials.deaths } or { 0 }
  end
  answers[#answers + 1] = answer
end
return answers
