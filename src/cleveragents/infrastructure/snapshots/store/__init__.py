"""Where contents and versions are kept: one file per plan. Knows no trees."""
