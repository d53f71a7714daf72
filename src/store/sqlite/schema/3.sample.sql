INSERT INTO outbox (lane, priority, run, key, due, asked_at, record)
  VALUES ('runs', 0, '01KAG0000000000000000000', 'stop-pod/web-1-pre', 1795248601000, 1795248600000,
          '{"v":1,"record":{"action":"stopPod","pod":{"namespace":"shop-dev","name":"web-1-pre"}}}');
