UPDATE slots SET deployed = 0 WHERE service = 'web';
