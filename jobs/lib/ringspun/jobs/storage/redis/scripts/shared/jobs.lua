-- The job of an entry; nil if it is no job. Only for reading: cjson would write an empty array as an object. It cannot tell the
-- two apart either, so an object as the arguments passes here, and the worker refuses it later.
-- https://redis.io/docs/latest/develop/programmability/lua-api/#cjson-library
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
