#!/bin/sh
# Announces changes to evalgate with curl and openssl, and sends them again until they are taken.
#
#     EVALGATE_ADMIN_URL=http://127.0.0.1:8081 CHANGES_SECRET=whsec_... ./announce.sh '[{"evaluation": "...", "workspace": "..."}]'
set -eu

body="{\"changes\": $1}"
id="msg_$(openssl rand -hex 16)"
key=$(printf %s "${CHANGES_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
delay=1

while true; do
  at=$(date +%s)
  signature=$(printf %s "$id.$at.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
  # The status follows the answer, on a line of its own.
  reply=$(
    printf %s "$body" | curl --silent --max-time 5 --write-out '\n%{http_code}' \
      --header 'Content-Type: application/json' --header "webhook-id: $id" --header "webhook-timestamp: $at" \
      --header "webhook-signature: v1,$signature" --data-binary @- "$EVALGATE_ADMIN_URL/api/changes"
  ) || reply=000
  case $reply in
    *200) exit 0 ;;
    *000 | *5??) ;; # Not known whether it was taken: the same again, with the same id, does no harm.
    *) # A fault that another try does not mend.
      echo "$reply" >&2
      exit 1
      ;;
  esac
  sleep "$delay"
  delay=$((delay < 30 ? delay * 2 : 60))
done
