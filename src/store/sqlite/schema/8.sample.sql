INSERT INTO tags VALUES ('shop', '{"v":1,"record":{"life":null,"tags":{}}}');
UPDATE revisions SET runs_deleted = 1 WHERE repository = 'shop';
