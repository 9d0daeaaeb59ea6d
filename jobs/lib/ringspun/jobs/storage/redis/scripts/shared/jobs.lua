-- What an entry is: its job, or nil if it is none. For looking at only; cjson would write an empty array as an object, which
-- is why the arguments may be one here. Whoever runs the job knows better.
local function job_of(entry)
  local read, job = pcall(cjson.decode, entry)
  if not read or type(job) ~= 'table' or not string.find(entry, '^%s*{') then return nil end
  if type(job['class']) ~= 'string' or type(job['args']) ~= 'table' or type(job['jid']) ~= 'string' then return nil end
  if job['queue'] == nil or job['queue'] == cjson.null then job['queue'] = 'default' end
  return type(job['queue']) == 'string' and job or nil
end

local function jid_of(entry)
  local job = job_of(entry)
  return job and job['jid'] or ''
end
