package respb
