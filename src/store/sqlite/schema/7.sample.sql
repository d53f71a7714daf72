UPDATE runs SET version = version + 1, moved = moved + 1 WHERE service = 'web';
