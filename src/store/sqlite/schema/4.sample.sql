INSERT INTO seed VALUES (1, x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f');
INSERT INTO webhook_calls VALUES ('shop', '{"v":1,"taken":[],"refused":[]}');
