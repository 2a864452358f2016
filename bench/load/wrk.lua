-- SPDX-License-Identifier: MIT
-- Sends a body of BODY bytes when that is set, and prints one line of numbers at the end.
local size = tonumber(os.getenv("BODY") or "0")

if size > 0 then
  wrk.method = "POST"
  wrk.body = string.rep("x", size)
  wrk.headers["Content-Type"] = "application/octet-stream"
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'JSON {"requests":%d,"seconds":%.4f,"p50":%.3f,"p99":%.3f,"max":%.3f,' ..
    '"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
