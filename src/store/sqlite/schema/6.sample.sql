UPDATE runs SET version = version + 1 WHERE service = 'web';
