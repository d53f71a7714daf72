CREATE TABLE products (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  price INTEGER NOT NULL -- in cents
);
INSERT INTO products (name, price) VALUES
  ('Espresso beans, 500 g', 1290),
  ('Moka pot', 3450),
  ('Enamel mug', 1100);
