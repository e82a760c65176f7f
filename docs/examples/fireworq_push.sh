#!/bin/sh
# Pushes a job with curl, and shows its queue.
#
#     sh fireworq_push.sh http://localhost:8080 http://localhost:3000/work
set -eu

fireworq=$1
worker=$2

curl -fsS -XPUT -d '{"max_workers": 5}' "$fireworq/queue/mail"
echo
curl -fsS -XPUT -d '{"queue_name": "mail"}' "$fireworq/routing/newsletter"
echo
curl -fsS -XPOST -d "{\"url\": \"$worker\", \"payload\": {\"id\": 12345}, \"run_after\": 60}" \
    "$fireworq/job/newsletter"
echo
curl -fsS "$fireworq/queue/mail/deferred?limit=10"
echo
curl -fsS "$fireworq/queue/mail/failed"
echo
curl -fsS "$fireworq/queues/stats"
echo
