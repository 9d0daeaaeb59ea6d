-- Entries of schedules: the names of all, scored by when they were last seen; what is kept of each, and its last runs.
local all_crons = key('ringspun:cron')

local function cron_key(name) return key('ringspun:cron:entry:' .. name) end

local function cron_runs_key(name) return key('ringspun:cron:runs:' .. name) end
