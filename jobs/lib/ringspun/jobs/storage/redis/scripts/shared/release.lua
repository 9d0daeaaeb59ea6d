-- Releases the unique lock that an entry names, if its job holds it and it is not one until expiry: the job will not run.
local function release_lock_of(entry)
  if not string.find(entry, '"unique_token"', 1, true) then return end
  local job = job_of(entry)
  if not job or type(job['unique_token']) ~= 'string' or job['unique_until'] == 'expiry' then return end
  local lock = lock_key(job['unique_token'])
  if redis.pcall('GET', lock) == job['jid'] then redis.call('DEL', lock) end
end
