-- with: keys trials
-- Counts runs that begin. ARGV: the namespace's prefix, the node, "1" if they are isolated, then four for each: queue, entry, jid
-- and which run of the node's it is. Answers for each how often it was tried, was isolated and has died; nothing if it is not in
-- flight there.
local node, isolated = ARGV[2], ARGV[3] == '1'
local answers = {}
begin_writing()
for i = 4, #ARGV, 4 do
  local queue, entry, jid = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local run = (isolated and 'isolated ' or 'shared ') .. node .. '/' .. ARGV[i + 3]
  local answer = {}
  if redis.call('LPOS', backup(node, queue), entry, 'RANK', -1) then
    local trials = trials_of(jid)
    -- One that is told twice, because the first answer was lost, has begun once.
    if trials.run ~= run then
      local name = isolated and 'isolated' or 'tries'
      trials[name] = trials[name] + 1
    end
    trials.run = run
    keep_trials(jid, trials)
    answer = { trials.tries, trials.isolated, trials.deaths }
  end
  answers[#answers + 1] = answer
end
return answers
