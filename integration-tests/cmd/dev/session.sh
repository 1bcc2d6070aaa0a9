desk=bbc823fa-06e7-42c6-87b5-605a5da22f15
call() {
  curl -s -w '\n%{http_code}\n' -H "X-Okapi-Tenant: $tenant" -H 'Content-Type: application/json' \
    -H 'X-Okapi-User-Id: 9ad09b01-7429-455f-9f64-e3897027db61' "$@"
}
check_out() {
  call $circulation/circulation/check-out-by-barcode \
    -d '{"itemBarcode":"'$1'","userBarcode":"P-1002","servicePointId":"'$desk'"}'
}
check_in() {
  call $circulation/circulation/check-in-by-barcode \
    -d '{"itemBarcode":"'$1'","servicePointId":"'$desk'","checkInDate":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'"}'
}

echo 'Lend three DVDs. The fourth is one too many for its material type: 422'
for dvd in D-2001 D-2002 D-2003 D-2004; do check_out $dvd; done

echo 'Read the open loans and the locks. There is no lock, because each was released'
call "$circulation/circulation/loans?query=status.name==Open&limit=10"
call $storage/check-out-lock-storage

echo 'Hold the lock of the patron by hand for 5 s. A check-out waits for 2 s, then 422'
call $storage/check-out-lock-storage -d '{"userId":"f4cae63d-1227-401e-92a8-000d1a700c85","ttlMs":5000}'
check_out B-1001

echo 'Take the DVDs back'
for dvd in D-2001 D-2002 D-2003; do check_in $dvd; done
