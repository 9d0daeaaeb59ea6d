-- The counts of a job from the quarantine, see Storage::Trials, and the run that was counted last.
local function trials_of(jid)
  local kept = redis.call('HGET', key('ringspun:alone'), jid) or ''
  local tries, isolated, deaths, run = string.match(kept, '^(%d+) (%d+) (%d+) (.*)$')
  return { tries = tonumber(tries or 0), isolated = tonumber(isolated or 0), deaths = tonumber(deaths or 0), run = run or '' }
end

local function keep_trials(jid, trials)
  local text = string.format('%d %d %d %s', trials.tries, trials.isolated, trials.deaths, trials.run)
  redis.call('HSET', key('ringspun:alone'), jid, text)
end
